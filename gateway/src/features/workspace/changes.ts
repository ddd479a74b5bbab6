/** What the file tools make of a file's content. PURE. The same for a call that is made and for a memory that waits for the owner. */
import type { FileChange, MemoryChange } from "../../ports/agent-files.ts";
import { failure } from "../../ports/result.ts";
import { edit } from "./text-edit.ts";

interface Write {
  readonly content: string;
  readonly append: boolean | undefined;
}
export function written({ content, append }: Write): FileChange {
  const add = (current: string | undefined): string =>
    current === undefined || current === "" || current.endsWith("\n") ? `${current ?? ""}${content}` : `${current}\n${content}`;
  return (current) => ({ ok: true, value: append === true ? add(current) : content });
}
interface Edit {
  readonly path: string;
  readonly oldString: string;
  readonly newString: string;
  readonly replaceAll: boolean | undefined;
}
export function edited({ path, oldString, newString, replaceAll }: Edit, counted: (count: number) => void = () => {}): FileChange {
  return (current) => {
    if (current === undefined) return failure("path.not_found", `There is no file \`${path}\` in the workspace.`);
    const next = edit(current, oldString, newString, replaceAll === true);
    if (!next.ok) return next;
    counted(next.value.count);
    return { ok: true, value: next.value.text };
  };
}
/** What the owner makes of a memory by keeping it. */
export function promoted(path: string, change: MemoryChange): FileChange {
  switch (change.kind) {
    case "append":
      return (current) =>
        written({ content: current === undefined || current === "" ? change.text.trimStart() : change.text, append: true })(current);
    case "write":
      return written({ content: change.content, append: false });
    case "edit":
      return edited({ path, ...change });
  }
}
