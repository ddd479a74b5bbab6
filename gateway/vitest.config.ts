/**
 * Tests of the gateway inside the real Workers runtime (workerd): Durable Objects, SQLite, R2, alarms, hibernation.
 *
 *   npx vitest run --config gateway/vitest.config.ts                     every suite
 *   npx vitest run --config gateway/vitest.config.ts test/session        one folder
 *   npx vitest run --config gateway/vitest.config.ts -t "[P1]"           tests by rule id
 *
 * What ends in `.test.ts` under `gateway/test/` runs here, except `test/sim/` and `*.unit.test.ts`: those need no runtime and run in
 * plain Node (`node --test`). Nothing here reaches the network: a request to anywhere but this machine is answered 599.
 */
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { blockOutbound } from "./test/support/outbound.ts";

const here = dirname(fileURLToPath(import.meta.url));

// wrangler is used as a library here and asks the network for three things unless told not to.
Object.assign(process.env, {
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_SEND_METRICS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  X_LOCAL_OBSERVABILITY: "false",
  X_LOCAL_EXPLORER: "false",
  // Its own settings, which it would otherwise write into the user's configuration.
  XDG_CONFIG_HOME: resolve(here, "..", "node_modules", ".cache", "wrangler"),
});

export default defineConfig({
  root: here,
  plugins: [
    cloudflareTest({
      // From the sources; the configuration names the bundle.
      main: resolve(here, "src", "app", "worker.ts"),
      wrangler: { configPath: resolve(here, "wrangler.jsonc") },
      remoteBindings: false,
      miniflare: { outboundService: blockOutbound, bindings: { SEALING_KEYS: "5e".repeat(32) } },
    }),
  ],
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/sim/**", "test/models/**", "**/*.unit.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores is the machine that this must be quick on. The files of one worker share a workerd, and each begins with empty storage.
    maxWorkers: 3,
    isolate: false,
    provide: { isLong: process.env["GSV_LONG"] !== undefined },
    setupFiles: ["test/support/fresh.ts"],
  },
});
