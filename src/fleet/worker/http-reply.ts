// What a simulated worker says in OpenAI's forms: whole answers, chunks of a stream, usage, errors. Only objects; nothing is sent here.
import type { AnswerRequest } from './api.js';
import type { PromptSources } from './engine-run.js';
import { tokensText } from './tokenizer.js';

/** Who answered, and where the prompt's tokens came from: what no real engine says so plainly. */
export interface Truth extends PromptSources {
  readonly worker: string;
  readonly dpRank: number;
}

/** One answer in the making. */
export class Reply {
  readonly #request: AnswerRequest;
  readonly #head: Readonly<Record<string, unknown>>;
  #generated = 0;

  /** @param created seconds since 1970 */
  constructor(request: AnswerRequest, number: number, created: number) {
    this.#request = request;
    const isChat = request.kind === 'chat';
    const objects = request.stream
      ? ['chat.completion.chunk', 'text_completion']
      : ['chat.completion', 'text_completion'];
    this.#head = {
      id: `${isChat ? 'chatcmpl' : 'cmpl'}-simulated-${number}`,
      object: objects[isChat ? 0 : 1],
      created,
      model: request.model,
    };
  }

  /** Counts a token. */
  take(): void {
    this.#generated++;
  }

  /** A chunk for the token taken last. */
  chunk(token: number, finished: boolean): object {
    const text = tokensText([token]);
    const finish_reason = finished ? this.#request.answer.finishReason : null;
    const first = this.#generated === 1 ? { role: 'assistant' } : {};
    const content = this.#request.kind === 'chat' ? { delta: { ...first, content: text } } : { text };
    return { ...this.#head, choices: [{ index: 0, ...content, logprobs: null, finish_reason }] };
  }

  /** The chunk behind the last one, if the usage was asked for. */
  usageChunk(cachedTokens: number, truth: Truth): object {
    return { ...this.#head, choices: [], usage: this.usage(cachedTokens), moonroute: said(truth) };
  }

  /** The whole answer. */
  whole(cachedTokens: number, truth: Truth): object {
    const { kind, answer } = this.#request;
    const text = tokensText(answer.tokens);
    const content = kind === 'chat' ? { message: { role: 'assistant', content: text } } : { text };
    return {
      ...this.#head,
      choices: [{ index: 0, ...content, logprobs: null, finish_reason: answer.finishReason }],
      usage: this.usage(cachedTokens),
      moonroute: said(truth),
    };
  }

  usage(cachedTokens: number): object {
    const prompt_tokens = this.#request.prompt.length;
    return {
      prompt_tokens,
      completion_tokens: this.#generated,
      total_tokens: prompt_tokens + this.#generated,
      prompt_tokens_details: { cached_tokens: cachedTokens },
    };
  }
}

function said({ worker, dpRank, gpuTokens, storeTokens }: Truth): object {
  return { simulated: true, worker, dp_rank: dpRank, gpu_tokens: gpuTokens, store_tokens: storeTokens };
}

/** An error as vLLM says it. */
export function errorBody(message: string, type: string, status: number): object {
  return { error: { message, type, param: null, code: status } };
}
