/** How far a chain of conversations, events and jobs has come (gateway rule EV11). PURE. */
import { type ChainLink, hopsOf, MAX_HOPS } from "../../ports/origin.ts";
import { canonicalKey } from "./session-keys.ts";

/** Conversations that may be steps of a chain, and do not say so when a machine begins a run in them. */
const STEPS: readonly string[] = ["task", "cron"];

export function hopsOfRun({ origin, sessionKey }: ChainLink, mainKey: string): number {
  if (origin?.kind !== "node_event") return hopsOf(origin);
  // Such a run does not know what stands above it. In the conversation of a task or a job it may be the end of a chain.
  const named = canonicalKey(sessionKey, mainKey);
  return named.ok && !STEPS.includes(named.address.form) ? 0 : MAX_HOPS;
}
