/** Hashes the inputs of a build. Each file is read once. Tests do not count as inputs. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";

export class Inputs {
  readonly #root: string;
  readonly #digests = new Map<string, string>();
  constructor(root: string) {
    this.#root = root;
  }
  /** Hex. The order of the paths does not matter; missing paths are ignored. */
  hash(paths: readonly string[], salt = ""): string {
    const hash = createHash("sha256").update(salt);
    const files = new Set(paths.flatMap((path) => filesIn(join(this.#root, path))));
    for (const file of [...files].sort()) hash.update(`\0${relative(this.#root, file)}\0${this.#digest(file)}`);
    return hash.digest("hex");
  }
  #digest(file: string): string {
    let digest = this.#digests.get(file);
    if (digest === undefined) {
      digest = createHash("sha256").update(readFileSync(file)).digest("hex");
      this.#digests.set(file, digest);
    }
    return digest;
  }
}

function filesIn(path: string): string[] {
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [path];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.test\.ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}
