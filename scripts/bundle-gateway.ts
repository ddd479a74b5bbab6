/**
 * Bundles the gateway's Worker into `dist/gateway/`, before wrangler or `scripts/build.ts` takes it from there: `worker.js`, and the
 * modules that it loads on first use (lib/bundle-parts.ts).
 *
 *   node scripts/bundle-gateway.ts [FOLDER]
 *
 * wrangler runs it (`build.command` of gateway/wrangler.jsonc). Never uses the network.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { bundleParts } from "./lib/bundle-parts.ts";
import { ROOT } from "./lib/root.ts";

const OUT = resolve(process.argv[2] ?? join(ROOT, "dist", "gateway"));
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
await bundleParts(join(ROOT, "gateway", "src", "app", "worker.ts"), OUT);
