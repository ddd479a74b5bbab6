/**
 * Who may have written what a conversation has read (promise S9, gateway rules TA1-TA4). PURE data and its order. Labels are stored with
 * sessions, calls and questions; policy/taint.ts says which label a source has.
 */

/** Rising: the owner, the agent itself, files by any author that the owner keeps, people whom the owner let in, anyone. */
export const TAINT_LABELS = ["owner", "self", "files", "peer", "world"] as const;
export type TaintLabel = (typeof TAINT_LABELS)[number];

export interface Taint {
  readonly label: TaintLabel;
  /** For people: `the output of laptop__Bash`. */
  readonly source: string;
}
export const OWNER: Taint = { label: "owner", source: "your own messages" };
/** Longest stored source. */
export const SOURCE_CHARS = 160;

const rank = (label: TaintLabel): number => TAINT_LABELS.indexOf(label);
export const isAbove = (label: TaintLabel, other: TaintLabel): boolean => rank(label) > rank(other);
/** The higher one; of two equal ones the first. */
export const higher = (first: Taint, second: Taint | undefined): Taint =>
  second !== undefined && isAbove(second.label, first.label) ? second : first;
/** Others may have written something in the conversation. Files of the owner's workspaces do not count. */
export const isForeign = (taint: Taint | undefined): taint is Taint => taint !== undefined && isAbove(taint.label, "files");
/** Someone else than the owner and the agent may have written it: files of a machine, skills, and all that is foreign. */
export const isUnsure = (taint: Taint | undefined): taint is Taint => taint !== undefined && isAbove(taint.label, "self");

/** `world, from the output of laptop__Bash`. */
export const taintText = ({ label, source }: Taint): string => `${label}, from ${source}`;
/** The end of an origin's text in the audit. Empty while no one else may have written anything. */
export const taintMark = (taint: Taint | undefined): string => (isForeign(taint) ? `; ${taintText(taint)}` : "");
