/**
 * Callers that the gateway has admitted for tasks. It looks at each of their requests itself; that it has admitted them before only saves a
 * question before the body is read. PURE.
 */
import type { HttpCaller } from "../../ports/http.ts";

/** Callers that are remembered. The one that came first makes room. */
const MOST = 64;

export class AdmittedCallers {
  readonly #callers = new Set<string>();

  has(caller: HttpCaller): boolean {
    return this.#callers.has(keyOf(caller));
  }
  add(caller: HttpCaller): void {
    const [first] = this.#callers;
    if (this.has(caller)) return;
    if (this.#callers.size >= MOST && first !== undefined) this.#callers.delete(first);
    this.#callers.add(keyOf(caller));
  }
  remove(caller: HttpCaller): void {
    this.#callers.delete(keyOf(caller));
  }
}
const keyOf = ({ token, origin }: HttpCaller): string => JSON.stringify([token, origin]);
