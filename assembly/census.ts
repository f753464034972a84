// A count of what is resident, group by group, for people who look; reads every record, so it is no hot path.
import { PREFIX_GROUP, RESULT } from './layout';
import { cell, GROUP_COUNT, PREFIX_COUNT, RECORD_TOP } from './cells';
import { groupComplete, mediaHeld, recordInUse } from './records';

/** Per group in RESULT, u32 each: complete digests, objects, of them on cpu, on disk, of unknown medium. */
export function census(): void {
  memory.fill(RESULT, 0, 64 * 20);
  for (let record: u32 = 1; record < cell(RECORD_TOP); record++) {
    if (!recordInUse(record)) continue;
    for (let prefix: u32 = 0; prefix < cell(PREFIX_COUNT); prefix++) {
      const media = mediaHeld(record, prefix);
      if (!media) continue;
      const at = RESULT + <usize>load<u8>(PREFIX_GROUP + <usize>prefix) * 20;
      store<u32>(at, load<u32>(at, 4) + 1, 4);
      if (media & 1) store<u32>(at, load<u32>(at, 8) + 1, 8);
      if (media & 2) store<u32>(at, load<u32>(at, 12) + 1, 12);
      if (media & 4) store<u32>(at, load<u32>(at, 16) + 1, 16);
    }
    for (let group: u32 = 0; group < cell(GROUP_COUNT); group++)
      if (groupComplete(record, group)) store<u32>(RESULT + <usize>group * 20, load<u32>(RESULT + <usize>group * 20) + 1);
  }
}
