/** What the adapters of all wires have in common. */
import type { AssistantMessageEvent, Model, SimpleStreamOptions, TranscriptContext } from "@mariozechner/pi-ai";
import type { Fetch } from "../transport.ts";

/** A model as pi-ai describes it, without what only one wire has. */
export type WireModel = Omit<Model<string>, "api" | "compat"> & { readonly compat?: Readonly<Record<string, unknown>> };
export interface WireOptions extends SimpleStreamOptions {
  readonly fetch: Fetch;
  readonly signal: AbortSignal;
}
/** One call. The events end with `done` or `error`; it never throws after its start. */
export type Stream = (model: WireModel, transcript: TranscriptContext, options: WireOptions) => AsyncIterable<AssistantMessageEvent>;

/** pi-ai requires a key even when the server needs none. */
export const NO_KEY = "none";
