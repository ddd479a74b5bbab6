/**
 * What the policy is asked and what it answers. The same question for runs, `tool.invoke`, `tool.request` and everything that will
 * call tools later. Plain data: a decision and its facts are stored with the call and with its approval.
 */
import type { PolicyClass, SandboxProfile } from "../../../protocol/gen/types.ts";
import type { Offer } from "./grants.ts";
import type { ToolTarget } from "./tool-target.ts";

/** `plan`: reads only. `ask`: programs, files of machines and egress ask. `auto`: what a sandbox contains runs. `full`: all runs. */
export type PolicyMode = "plan" | "ask" | "auto" | "full";

/** One tool call that a run or a client wants to make. */
export interface PolicyCall {
  /** As the caller knows the tool: `laptop__Bash`, `gsv__ReadFile`. */
  readonly name: string;
  /** As the target knows it: `Bash`. */
  readonly tool: string;
  readonly target: ToolTarget;
  readonly policyClass: PolicyClass;
  readonly args: Readonly<Record<string, unknown>>;
  /** What the target machine's commands really run in. Absent: not known, so nothing confines them. */
  readonly sandbox?: SandboxProfile | undefined;
}

/**
 * `rule` names what decided, for the audit and for people: a rule of the configuration (`rule:ID`), `toolApproval.defaultDecision`,
 * grants (`grant:ID`), a mode (`mode:auto`), a label (`taint:world`), `protected` for what only the owner's own request spares a question,
 * `autonomy.requires_approval`, or `policy.error`.
 */
export type Decision =
  | { readonly verdict: "allow"; readonly rule: string }
  /** `why`: a sentence for the owner: what about this call needs a word. `offer`: what an answer can allow for longer than once. */
  | { readonly verdict: "ask"; readonly rule: string; readonly why: string; readonly offer?: Offer }
  /** `text`: what happened and what to do instead, for the model and for people. */
  | { readonly verdict: "deny"; readonly rule: string; readonly text: string };
