/** Builds the deployed Worker with wrangler, once per test process. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { OFFLINE_WRANGLER, ROOT } from "../../../scripts/lib/root.ts";
import { run } from "../../../scripts/lib/run.ts";

export interface Built {
  readonly script: string;
  readonly gzipBytes: number;
  readonly remove: () => void;
}
export async function buildWorker(): Promise<Built> {
  const folder = mkdtempSync(join(tmpdir(), "gsv-whatsapp-build-"));
  const wrangler = join(dirname(createRequire(import.meta.url).resolve("wrangler/package.json")), "bin", "wrangler.js");
  const args = ["deploy", "--dry-run", "--config", join(ROOT, "channels", "whatsapp", "wrangler.jsonc"), "--outdir", folder];
  const { code, output } = await run(process.execPath, [wrangler, ...args], {
    cwd: ROOT,
    env: { ...OFFLINE_WRANGLER, WRANGLER_LOG_PATH: join(folder, "log"), NO_COLOR: "1" },
  });
  if (code !== 0) throw new Error(`wrangler could not bundle the channel:\n${output}`);
  const script = join(folder, "worker.js");
  return {
    script,
    gzipBytes: gzipSync(readFileSync(script), { level: 9 }).length,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
