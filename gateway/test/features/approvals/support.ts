/** What the tests of questions and grants share: the owner's client, and sessions that only record what they are asked. */
import { reset } from "cloudflare:test";
import { afterAll, beforeAll, vi } from "vitest";
import type { ApprovalReport, WaitingQuestion } from "../../../src/ports/approvals.ts";
import { client, fakeSessions, type Peer, port, seed } from "../../support/gateway.ts";

/** Assigned before the first test of a file. */
export let peer: Peer;
export let asked: ReturnType<typeof fakeSessions>["asked"];

export function begin(): void {
  beforeAll(async () => {
    await reset();
    asked = fakeSessions().asked;
    await seed();
    peer = await client();
  });
  afterAll(() => {
    vi.restoreAllMocks();
  });
}

/** A session reports its questions. */
export const report = (
  sessionKey: string,
  revision: number,
  waiting: readonly WaitingQuestion[],
  ended: ApprovalReport["ended"] = [],
  more: Pick<ApprovalReport, "conversation"> = {},
) => port().approvals({ sessionKey, agentId: "main", revision, waiting, ended, ...more });
