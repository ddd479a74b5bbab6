/** The tools that run inside GSV. */
import type { GatewayPort } from "./gateway.ts";
import type { MediaBlock } from "./messages.ts";
import type { Origin } from "./origin.ts";
import type { GsvError } from "./result.ts";
import type { SessionIdentity } from "./session.ts";
import type { ToolEntry } from "./tool-entry.ts";

export interface NativeToolContext {
  readonly identity: SessionIdentity;
  readonly callId: string;
  /** Who caused the run; absent when a client called the tool itself. */
  readonly origin?: Origin;
  readonly now: number;
  readonly userTimezone: string;
  readonly gateway: GatewayPort;
  /** The key of the session's file with this number (`media:3`). Absent when a client called the tool itself. */
  readonly mediaKey?: (number: number) => string | undefined;
}

export type NativeOutcome =
  | {
      readonly ok: true;
      readonly result: unknown;
      /** Files that go out with the run's answer. */
      readonly files?: readonly MediaBlock[];
    }
  | { readonly ok: false; readonly error: GsvError };

export interface NativeTools {
  readonly entries: readonly ToolEntry[];
  /** Safe to run again with the same callId (promises P8). Never throws. */
  run(name: string, args: Readonly<Record<string, unknown>>, context: NativeToolContext): Promise<NativeOutcome>;
}
