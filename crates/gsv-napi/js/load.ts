/** Loads the addon of this platform, which is a file of this package. Downloads nothing. */
import { createRequire } from "node:module";
import { failure } from "./errors.ts";
import type { Addon } from "./gen/native.d.ts";

/** As the build names the file. */
export function platformName(): string {
  if (process.platform !== "linux") return `${process.platform}-${process.arch}`;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return `linux-${process.arch}-${header.glibcVersionRuntime === undefined ? "musl" : "gnu"}`;
}

export function loadAddon(): typeof Addon {
  const file = `gsv-node.${platformName()}.node`;
  try {
    return (createRequire(import.meta.url)(`./${file}`) as { Addon: typeof Addon }).Addon;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND";
    throw failure(
      "node.cannot_start",
      isMissing ? `This package of @gsv/node has no ${file}.` : `${file} can't be loaded: ${String(error)}`,
      "Build the package on this platform: npm run build --workspace @gsv/node",
    );
  }
}
