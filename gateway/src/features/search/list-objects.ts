/** Names and etags of an agent's objects in the bucket. */
import { QUARANTINE_FOLDER } from "../../storage/keys.ts";
import { taintText } from "../../storage/versions.ts";
import type { Listed } from "./source-store.ts";
import type { Pass } from "./pass.ts";

/** Adds the objects below a folder of the agent, by name. False: there are more than `most`. Throws when the bucket fails. */
export async function listObjects(
  pass: Pass,
  prefix: string,
  into: Map<string, Listed>,
  most: number,
  folders?: Set<string>,
): Promise<boolean> {
  let cursor: string | undefined;
  do {
    const page = await pass.ports.bucket.list({
      prefix: pass.folder + prefix,
      include: ["customMetadata"],
      ...(folders === undefined ? {} : { delimiter: "/" }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const object of page.objects) {
      if (into.size >= most) return false;
      const { key } = object;
      // No search finds a memory that waits for the owner's review (rule TA13).
      if (!key.endsWith("/") && !key.startsWith(pass.folder + QUARANTINE_FOLDER)) into.set(key.slice(pass.folder.length), listed(object));
    }
    for (const folder of page.delimitedPrefixes) folders?.add(folder.slice(pass.folder.length));
    cursor = page.truncated ? page.cursor : undefined;
  } while (cursor !== undefined);
  return true;
}
export function listed(object: R2Object): Listed {
  const taint = taintText(object);
  return { etag: object.etag, ...(taint === undefined ? {} : { taint }) };
}
