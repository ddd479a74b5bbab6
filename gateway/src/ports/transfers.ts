/** Port for copies of files that a tool call asks for. Types only. */
import type { Origin } from "./origin.ts";
import type { Result } from "./result.ts";
import type { SessionIdentity } from "./session.ts";
import type { Taint } from "./taint.ts";

export interface TransferAsk {
  readonly from: SessionIdentity;
  /** The id of the tool call. The copy is made once per call, also when the call runs again. */
  readonly callId: string;
  /** Who caused the run in which the tool was called; undefined when a client called it. */
  readonly origin: Origin | undefined;
  /** What the conversation has read. Absent: nothing of others. */
  readonly taint?: Taint | undefined;
  /** As the model wrote them: `NODE:PATH` or `gsv:PATH`. */
  readonly source: string;
  readonly destination: string;
  readonly force: boolean;
  /** Wait this long for the end. */
  readonly waitMs: number;
}
export type TransferTold =
  | { readonly status: "done"; readonly sizeBytes: number; readonly sha256: string }
  /** It goes on, and the conversation is told of its end. */
  | { readonly status: "running"; readonly doneBytes: number; readonly sizeBytes?: number };

export interface TransferPort {
  transfer(ask: TransferAsk): Promise<Result<TransferTold>>;
}
