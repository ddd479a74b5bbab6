/** The tools that run inside GSV. */
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import type { GatewayPort } from "./gateway.ts";
import type { Origin } from "./origin.ts";
import type { GsvError } from "./result.ts";
import type { SessionIdentity } from "./session.ts";

export interface NativeToolContext {
  readonly identity: SessionIdentity;
  readonly callId: string;
  /** Who caused the run; absent when a client called the tool itself. */
  readonly origin?: Origin;
  readonly now: number;
  readonly userTimezone: string;
  readonly gateway: GatewayPort;
}

export interface NativeTools {
  readonly definitions: readonly ToolDefinition[];
  /** Names of those that conversations other than the owner's have too. */
  readonly forGuests: ReadonlySet<string>;
  /** Safe to run again with the same callId (promises P8). Never throws. */
  run(
    name: string,
    args: Readonly<Record<string, unknown>>,
    context: NativeToolContext,
  ): Promise<{ ok: true; result: unknown } | { ok: false; error: GsvError }>;
}
