/** What an undo has to do with agents' files (rule UN3), from the records of their changes. PURE. The node has the same rule for its files. */
import type { FileChanging, FileVersion } from "../../ports/changes.ts";

/** A content: its sha256; `absent`: no file; undefined: not known. */
export type Content = string | undefined;
export const ABSENT = "absent";

export interface Step {
  readonly agentId: string;
  readonly path: string;
  /** What the path held before the first undone change. Absent: no file. */
  readonly before: FileVersion | undefined;
  /** What the undone calls left there. Anything else is a later change. */
  readonly left: readonly Content[];
  /** Another change came between the undone ones, and the undo would lose it. */
  readonly isMixed: boolean;
}
export const contentOf = (version: FileVersion | undefined): Content => (version === undefined ? ABSENT : version.sha256);
const same = (one: Content, other: Content): boolean => one !== undefined && one === other;

/** `changes` in their order. The newest first. */
export function planSteps(changes: readonly FileChanging[]): readonly Step[] {
  const steps = new Map<string, Step>();
  for (const { agentId, path, before, after } of changes) {
    const key = `${agentId}\n${path}`;
    const known = steps.get(key);
    const left = after ?? ABSENT;
    // A record may be of a change that was not made, so every content that the calls knew counts.
    const found = contentOf(before);
    const isKnown = known === undefined || same(contentOf(known.before), found) || known.left.some((content) => same(content, found));
    steps.delete(key);
    steps.set(key, {
      agentId,
      path,
      before: known === undefined ? before : known.before,
      left: [...(known?.left ?? []), left],
      isMixed: (known?.isMixed ?? false) || !isKnown,
    });
  }
  return [...steps.values()].reverse();
}

export type Ruling = { readonly kind: "restore" | "unchanged" } | { readonly kind: "conflict"; readonly problem: string };

/** `now`: what the path holds. */
export function ruleOn({ before, left, isMixed }: Step, now: Content, force: boolean): Ruling {
  if (same(contentOf(before), now)) return { kind: "unchanged" };
  if (force) return { kind: "restore" };
  if (isMixed) return { kind: "conflict", problem: "it was also changed in between by something else" };
  if (left.some((content) => same(content, now))) return { kind: "restore" };
  return { kind: "conflict", problem: now === ABSENT ? "it was removed since" : "it was changed since" };
}

export function actionOf({ before, left }: Step): "rewrite" | "bring_back" | "remove" {
  if (before === undefined) return "remove";
  return left.at(-1) === ABSENT ? "bring_back" : "rewrite";
}
