/** Where the repository is, and the environment in which its tools stay off the network. */
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** wrangler asks the network for its newest version, reports usage and fetches an object unless told not to. */
export const OFFLINE_WRANGLER: Readonly<Record<string, string>> = {
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_SEND_METRICS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  X_LOCAL_OBSERVABILITY: "false",
  X_LOCAL_EXPLORER: "false",
};
