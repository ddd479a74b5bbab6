/** An entry for the audit log. */

export interface AuditInput {
  readonly actor: string;
  readonly action: string;
  readonly target?: string;
  readonly decision: "allowed" | "denied" | "failed";
  readonly detail?: string;
  readonly argsHash?: string;
}
