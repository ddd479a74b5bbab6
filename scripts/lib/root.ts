/** The repository's root, and the environment that keeps its tools off the network. */
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** Without these, wrangler looks for newer versions, reports usage and fetches an object from the network. */
export const OFFLINE_WRANGLER: Readonly<Record<string, string>> = {
  WRANGLER_HIDE_BANNER: "true",
  WRANGLER_SEND_METRICS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
  X_LOCAL_OBSERVABILITY: "false",
  X_LOCAL_EXPLORER: "false",
  // Its own settings, which it would otherwise write into the user's configuration.
  XDG_CONFIG_HOME: resolve(ROOT, "node_modules", ".cache", "wrangler"),
};
