/**
 * PURE. The live output of calls without secrets. A secret may come in two parts: what may be the beginning of one waits for the next
 * part of the same call, or for its end. Kept in memory only; output that is lost here is in the call's result.
 */
import { hideTokens } from "../../calls/secrets.ts";

export interface LiveOutputOptions {
  /** A text without stored secrets. */
  readonly scrub: (text: string) => string;
  /** Where the beginning of a stored secret starts at the end of a text. */
  readonly unfinished: (text: string) => number;
}

/** Calls whose last characters wait. The oldest one is dropped for another. */
const MAX_WAITING = 256;
/** Longer words are no tokens. */
const TOKEN_BEGINS = /\bg(?:s(?:v(?:_[A-Za-z0-9_-]{0,200})?)?)?$/;

export class LiveOutput {
  readonly #options: LiveOutputOptions;
  readonly #waiting = new Map<string, string>();

  constructor(options: LiveOutputOptions) {
    this.#options = options;
  }

  /** What of a call's output may be shown now. */
  next(callId: string, chunk: string): string {
    const text = `${this.#waiting.get(callId) ?? ""}${chunk}`;
    this.#waiting.delete(callId);
    const clean = this.#options.scrub(text);
    const at = Math.min(this.#options.unfinished(clean), TOKEN_BEGINS.exec(clean)?.index ?? clean.length);
    if (at < clean.length) {
      const [oldest] = this.#waiting.keys();
      if (oldest !== undefined && this.#waiting.size >= MAX_WAITING) this.#waiting.delete(oldest);
      this.#waiting.set(callId, clean.slice(at));
    }
    // A token that goes on in the next part is hidden with it, so tokens are looked for in what is shown.
    return hideTokens(clean.slice(0, at));
  }

  /** What waited when the call ended: no secret, because nothing follows. */
  end(callId: string): string {
    const rest = this.#waiting.get(callId) ?? "";
    this.#waiting.delete(callId);
    return hideTokens(rest);
  }
}
