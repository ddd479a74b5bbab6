/** Differences between the generated files and the files on disk. PURE: the caller reads the disk. */
import type { Files } from "./generate.ts";

export interface Drift {
  /** Generated files that are missing or different on disk, sorted. */
  readonly drifted: readonly string[];
  /** Files in generated folders that are not generated, sorted. */
  readonly strays: readonly string[];
}

export function driftOf(files: Files, read: (path: string) => string | undefined, present: readonly string[]): Drift {
  return {
    drifted: [...files].filter(([path, text]) => read(path) !== text).map(([path]) => path),
    strays: present.filter((path) => !files.has(path)).sort(),
  };
}
