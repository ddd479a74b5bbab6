/**
 * A short digest of the form of stored data: all migrations of the gateway and the channels, and the classes of Durable Objects. Two builds
 * with the same digest read each other's state; two others may not, because migrations only go forward (gateway/spec/deploy.md DE12).
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDERS = ["gateway/src", "gateway/packs", "channels/kit/src"];
/** The type of a list of migrations, each of which has a name; in the kit of the channels, a list of statements. */
const IS_LIST = /: readonly (?:Historical|Row)?Migration\[\] = \[/;
const STATEMENTS = /const MIGRATIONS: readonly \(readonly string\[\]\)\[\] = \[[\s\S]*?\n\];/;

/** What of a source says which migrations there are. */
export function migrationsOf(source: string): readonly string[] {
  const [statements] = STATEMENTS.exec(source) ?? [];
  if (statements !== undefined) return [statements];
  return IS_LIST.test(source) ? [...source.matchAll(/\bname: ("(?:[^"\\]|\\.)*")/g)].map(([, name = ""]) => name) : [];
}

/** `classes`: the exports of each Worker's configuration. */
export function stateDigest(root: string, classes: readonly unknown[]): string {
  const hash = createHash("sha256").update(JSON.stringify(classes));
  for (const folder of FOLDERS) {
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).sort()) {
      if (!file.endsWith(".ts") || file.endsWith(".test.ts")) continue;
      for (const migration of migrationsOf(readFileSync(join(root, folder, file), "utf8"))) hash.update(`${file} ${migration}\n`);
    }
  }
  return hash.digest("hex").slice(0, 8);
}
