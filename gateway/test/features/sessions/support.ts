/** Events of sessions as the gateway sends them, and what a peer received of them. */
import { asRunId, asSessionKey } from "../../../../protocol/gen/types.ts";
import type { SessionNews } from "../../../src/ports/gateway.ts";
import type { Peer } from "../../support/gateway.ts";

export const MAIN = "agent:main:main";
export const log = (seq: number, sessionKey = MAIN): SessionNews => ({
  event: "chat",
  payload: { sessionKey: asSessionKey(sessionKey), state: "partial", message: { role: "assistant", content: [] }, sessionSeq: seq },
});
export const delta = (text: string, offset: number, step = 1, attempt = 1): SessionNews => ({
  event: "chat",
  payload: { sessionKey: asSessionKey(MAIN), state: "delta", runId: asRunId("r"), text, offset, step, attempt },
});
/** The values of one field in the frames that a peer received. */
export const fieldsOf = (peer: Peer, name: "sessionSeq" | "text"): unknown[] =>
  peer
    .events()
    .flatMap(({ payload }) => (payload !== null && typeof payload === "object" && name in payload ? [Reflect.get(payload, name)] : []));
export const seqs = (peer: Peer): unknown[] => fieldsOf(peer, "sessionSeq");
/** When this arrives, every earlier event has arrived. */
export const settle = async (peer: Peer): Promise<void> => void (await peer.ok("sessions.list"));
