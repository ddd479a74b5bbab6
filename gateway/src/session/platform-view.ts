/**
 * Shows people on a platform the progress of a run: that the agent is typing, and the answer while it is generated. Best effort: both may
 * fail or be lost with an incarnation; the Reply effect sends the answer itself.
 */
import type { GatewayPort } from "../ports/gateway.ts";
import { isReplyOpen } from "./effects/reply.ts";
import { replyName } from "./machine/ids.ts";
import { activeRun, type State } from "./machine/state.ts";
import type { Delta } from "./publisher.ts";
import type { After } from "../../../protocol/runtime/within.ts";

export interface PlatformViewPorts {
  readonly state: () => State | undefined;
  readonly gateway: Pick<GatewayPort, "reply">;
  readonly now: () => number;
  readonly after: After;
}
/** The channel stops by itself after two minutes. */
const RENEW_MS = 60_000;
/** About as often as platforms accept edits; the channel has a rate limit of its own. */
const LIVE_MS = 1_500;

export class PlatformView {
  readonly #ports: PlatformViewPorts;
  #ordinal: number | undefined;
  #cancel: () => void = () => {};
  #text = "";
  #attempt = "";
  #shownAt = Number.NEGATIVE_INFINITY;

  constructor(ports: PlatformViewPorts) {
    this.#ports = ports;
  }

  /** After each commit. */
  moved(): void {
    const run = this.#run();
    if (run?.ordinal === this.#ordinal) return;
    this.#cancel();
    this.#cancel = () => {};
    this.#ordinal = run?.ordinal;
    this.#text = "";
    this.#attempt = "";
    this.#shownAt = Number.NEGATIVE_INFINITY;
    if (run) this.#typing();
  }
  #run() {
    const state = this.#ports.state();
    const run = state && activeRun(state.run);
    return run?.reply === undefined ? undefined : { ordinal: run.ordinal, route: run.reply, ref: state?.identity.ref ?? "" };
  }
  #typing(): void {
    const run = this.#run();
    if (!run || run.ordinal !== this.#ordinal) return;
    void this.#ports.gateway.reply({ kind: "typing", route: run.route, active: true }).catch(() => undefined);
    this.#cancel = this.#ports.after(RENEW_MS, () => this.#typing());
  }
  /** Text of the answer as it comes: of the newest attempt, from its beginning. */
  delta({ step, attempt, offset, text }: Delta): void {
    const run = this.#run();
    if (!run) return;
    const name = `${step}/${attempt}`;
    if (name !== this.#attempt) {
      this.#attempt = name;
      this.#text = "";
    }
    if (offset !== this.#text.length) return;
    this.#text += text;
    const now = this.#ports.now();
    if (now - this.#shownAt < LIVE_MS || this.#text.trim() === "") return;
    if (isReplyOpen(this.#ports.state()?.outbox ?? [], run.route)) return;
    this.#shownAt = now;
    const deliveryId = replyName(run.ref, run.ordinal);
    void this.#ports.gateway.reply({ kind: "live", route: run.route, deliveryId, text: this.#text }).catch(() => undefined);
  }
}
