/** An entry for the audit log. */

export interface AuditInput {
  readonly actor: string;
  readonly action: string;
  /** What caused it: `originText` of a run's origin, or what a connection is. */
  readonly origin?: string;
  readonly target?: string;
  readonly tool?: string;
  readonly decision: "allowed" | "denied" | "failed";
  /** The rule that decided. */
  readonly rule?: string;
  readonly detail?: string;
  readonly argsHash?: string;
}
/** An entry of a session. Its arguments are stored as a digest. */
export interface SessionAudit extends Omit<AuditInput, "argsHash"> {
  readonly args?: Readonly<Record<string, unknown>>;
}
/** The action of every entry of a tool call that a session made. */
export const TOOL_CALL = "tool.call";
/** The rule of the entry of an answer with which the owner denied a call. */
export const answerRule = (code: string): string => `approval:${code.toUpperCase()}`;
