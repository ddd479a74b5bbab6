/** Tells the owner of a machine whose link was cut because nothing was heard, when it does not come back (rule NT12). */
import type { NotifyPort } from "../../ports/notify.ts";
import { localTime } from "../../prompt/dates.ts";
import type { Nodes } from "./store.ts";

export interface SilencePorts {
  readonly nodes: Pick<Nodes, "silentSince" | "silentTold">;
  readonly notify: NotifyPort["notify"];
  readonly timeZone: () => string;
}
const RETURN_MS = 120_000;
const AT_ONCE = 20;

export const nextSilence = ({ nodes }: SilencePorts): number | undefined => {
  const [first] = nodes.silentSince(1);
  return first && first.at + RETURN_MS;
};
export function tellSilence({ nodes, notify, timeZone }: SilencePorts, now: number): void {
  for (const { nodeId, at } of nodes.silentSince(AT_ONCE)) {
    if (at + RETURN_MS > now) break;
    const zone = timeZone();
    notify.tell({
      kind: "machine",
      key: `silent:${nodeId}:${at}`,
      cause: `silent:${nodeId}`,
      text: `The machine ${nodeId} has not been heard from since ${localTime(at, zone)} (${zone}), so its link was closed. It connects again by itself when it runs and can reach the gateway. Look there: \`gsv status\`.`,
    });
    nodes.silentTold(nodeId);
  }
}
