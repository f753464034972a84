// What is said of a trace that was rebuilt from a recording: what KV events can't show, and what was left out.
import { CHUNK_GAP_MS, DECODE_GAP_MS } from './recording-chains.js';
import type { RecordingOddity } from './types.js';

export const RECORDING_ODDITIES: Readonly<Record<RecordingOddity, string>> = {
  'recording-estimate':
    'requests rebuilt from KV events, so what is simulated is an estimate: prompts whose every block was cached made no event and are ' +
    `missing; prompts and outputs end at whole blocks; what followed within ${CHUNK_GAP_MS} ms counts to the prompt`,
  'recording-one-block':
    'requests of which one block alone was new: all before it was cached, or it is the decoding of such a prompt; taken as prompts that end there',
  'recording-unknown-root':
    'requests whose prompt begins with blocks from before the recording, or lost ones; taken as if it began with the last of those',
  'recording-no-output':
    'requests of which no generated block was seen: less than a block, or it was read before one was full; taken as 1 token',
  'recording-other-block-size':
    'stored events of another block size than the first; ignored (say idTokens for another)',
  'recording-other-group': 'events of groups that are not the main attention; ignored',
  'recording-other-tier':
    'stored events of host memory, disk or a remote store; ignored, since only GPU blocks show a prompt',
  'recording-dropped-event': 'events that mean nothing to a router; ignored',
  'recording-bad-event': 'events that could not be read; ignored',
  'recording-unreadable': "workers' messages that could not be read; ignored",
  'recording-loss':
    'times that messages of a worker are missing; requests that ran then end there, and what was stored meanwhile is unknown',
  'recording-cut-short': `requests ended before they were idle for ${DECODE_GAP_MS} ms, since too many were open`,
  'recording-no-worker': "messages of the store's master, and none of a worker, whose events alone show requests",
};
