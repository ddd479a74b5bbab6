/** Finds a file of an agent's workspace as reading finds it: the agent's own, a shared skill's, or one that is built in. Must not write. */
import type { Result } from "../../ports/result.ts";
import { type Bucket, guarded } from "../bucket.ts";
import { fileKey, globalSkillKey, type WorkspacePath } from "../keys.ts";
import { isMark } from "../replace.ts";
import { builtinFile } from "../skills/builtin/index.ts";
import { sha256Of } from "../skills/folder.ts";

export type ReadableFile =
  | { readonly kind: "stored"; readonly key: string; readonly object: R2Object }
  | { readonly kind: "built_in"; readonly bytes: Uint8Array<ArrayBuffer>; readonly sha256: string };

/** Undefined: there is none. */
export async function readableFile(
  bucket: Pick<Bucket, "head">,
  agentId: string,
  path: WorkspacePath,
): Promise<Result<ReadableFile | undefined>> {
  for (const key of [fileKey(agentId, path), globalSkillKey(path)]) {
    if (key === undefined) continue;
    const head = await guarded(`read \`${path}\``, () => bucket.head(key));
    if (!head.ok) return head;
    const object = head.value;
    if (object === null) continue;
    if (!isMark(object)) return { ok: true, value: { kind: "stored", key, object } };
    // The agent's own file is being deleted: the shared one is not in use.
    break;
  }
  const content = builtinFile(path)?.content;
  if (content === undefined) return { ok: true, value: undefined };
  const bytes = Uint8Array.from(new TextEncoder().encode(content));
  return { ok: true, value: { kind: "built_in", bytes, sha256: await sha256Of(bytes) } };
}
