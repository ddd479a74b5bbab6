/** What the owner has allowed for a time, and what an answer to a question can allow. Plain data: stored with the question and by the gateway. */
import type { ApprovalRule, SandboxProfile } from "../../../protocol/gen/types.ts";

/** How long an answer allows calls of its scope. */
export type GrantChoice = "session" | "1h" | "8h" | "30d" | "always";

/** With `words`: exactly this command. Else the program with this subcommand, or without one, and any further arguments. */
export interface GrantedCommand {
  readonly program: string;
  readonly subcommand?: string;
  readonly words?: readonly string[];
}
export interface GrantScope {
  readonly agentId: string;
  /** As the target knows it: `Bash`. */
  readonly tool: string;
  /** The machine; absent for a tool of the gateway. */
  readonly nodeId?: string;
  /** The machine's folder when the owner was asked. Absent for a machine that reports none. */
  readonly workspace?: string;
  readonly what: GrantedWhat;
}
export type GrantedWhat =
  /** `folder`: where the commands start, below the workspace; "" is the workspace itself. */
  | { readonly kind: "commands"; readonly sandbox: SandboxProfile; readonly folder: string; readonly commands: readonly GrantedCommand[] }
  /** Exactly this text for the shell. */
  | { readonly kind: "line"; readonly sandbox: SandboxProfile; readonly folder: string; readonly line: string }
  /** Any commands in the sandbox, which may reach these hosts. */
  | { readonly kind: "hosts"; readonly sandbox: SandboxProfile; readonly hosts: readonly string[] }
  /** Files in the folder, at any depth. */
  | { readonly kind: "files"; readonly folder: string }
  /** Exactly these arguments name where data is sent. */
  | { readonly kind: "destination"; readonly to: readonly (readonly [argument: string, value: string])[] };

export interface Grant {
  readonly id: string;
  readonly scope: GrantScope;
  readonly expiresAt: number;
  /** Holds for this conversation only. */
  readonly sessionId?: string;
}
/** What an answer to a question could grant. */
export interface Offer {
  readonly scope: GrantScope;
  /** The rule that "always" saves. Absent: a rule cannot say it. */
  readonly always?: Omit<ApprovalRule, "id">;
}
