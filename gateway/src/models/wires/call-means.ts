/**
 * What a call gives to clients that stand behind pi-ai's adapters: some adapters take no `fetch` of their own, so their clients find
 * the call's one by its abort signal, which reaches them unchanged.
 */
import type { AwsKeys } from "../cloud.ts";
import type { Fetch } from "../transport.ts";

interface CallMeans {
  readonly fetch: Fetch;
  /** For requests that are signed. */
  readonly awsKeys?: AwsKeys | undefined;
}
const calls = new WeakMap<AbortSignal, CallMeans>();

export const setCallMeans = (signal: AbortSignal, means: CallMeans): unknown => calls.set(signal, means);
export function callMeans(signal: AbortSignal | undefined): CallMeans {
  const means = signal && calls.get(signal);
  if (means === undefined) throw new Error("a request outside of a model call");
  return means;
}
