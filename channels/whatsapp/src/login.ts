/**
 * The login as a person sees it: the code to scan or to type, and waiting for it. In memory only; the connection's machine decides when
 * a login begins and ends.
 */
import type { ChannelLogin } from "../../../protocol/gen/types.ts";
import type { State } from "./connection.ts";

type Code = { readonly qr: string } | { readonly code: string };

export class Login {
  readonly #after: (ms: number, work: () => void) => () => void;
  readonly #watchers = new Set<() => void>();
  #shown: Code | undefined;
  #codeAsked = false;

  constructor(after: (ms: number, work: () => void) => () => void) {
    this.#after = after;
  }

  /** A new socket: earlier codes are void. */
  reset(): void {
    this.#shown = undefined;
    this.#codeAsked = false;
  }
  show(shown: Code): void {
    this.#shown = shown;
    this.changed();
  }
  /** True once per socket: WhatsApp gives one pairing code. */
  mayAskForCode(): boolean {
    const first = !this.#codeAsked;
    this.#codeAsked = true;
    return first;
  }
  /** The connection's state changed: waiting callers look again. */
  changed(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
  /** Resolves when a code is shown, when `isOver` holds, or after `ms`. */
  async settled(isOver: () => boolean, ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel();
        this.#watchers.delete(look);
        resolve();
      };
      const look = (): void => {
        if (this.#shown !== undefined || isOver()) end();
      };
      const cancel = this.#after(ms, end);
      this.#watchers.add(look);
      look();
    });
  }

  /** What `channel.login` answers in this state. */
  answer(state: State): ChannelLogin {
    switch (state.kind) {
      case "open":
        return { state: "connected", message: "This number is linked and connected." };
      case "pairing":
        return this.#pairing(state.until);
      case "connecting":
        return { state: "connecting", message: "Connecting to WhatsApp." };
      case "waiting":
      case "stopped":
      case "idle":
        return { state: "failed", message: state.note ?? "WhatsApp is not connected. Try again." };
    }
  }
  #pairing(expiresAt: number): ChannelLogin {
    const shown = this.#shown;
    if (shown === undefined) return { state: "connecting", expiresAt, message: "Waiting for WhatsApp." };
    if ("code" in shown)
      return {
        state: "code",
        code: shown.code,
        expiresAt,
        message:
          "On the phone: WhatsApp, Settings, Linked devices, Link a device, Link with phone number instead. Type this code within two minutes.",
      };
    return {
      state: "qr",
      qr: shown.qr,
      expiresAt,
      message: "On the phone: WhatsApp, Settings, Linked devices, Link a device. Scan this code within two minutes.",
    };
  }
}
