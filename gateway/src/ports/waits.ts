/** Calls of sessions that wait for machines (gateway rules OM): what the gateway is told of them, and what it answers. */

export interface WaitingForNode {
  readonly callId: string;
  readonly nodeId: string;
  /** Full name of the tool. */
  readonly tool: string;
  /** Wall times, for people. */
  readonly since: number;
  readonly expiresAt: number;
}
/** All calls of one session that wait. The gateway drops a report that is older than one it has. */
export interface WaitReport {
  readonly sessionKey: string;
  readonly revision: number;
  readonly runId: string;
  readonly calls: readonly WaitingForNode[];
}
export interface WaitAnswer {
  /** The machines of these calls are connected, or known no more: the policy says what becomes of them. */
  readonly ready: readonly string[];
  /** The gateway keeps no more calls that wait. */
  readonly full?: true;
}
