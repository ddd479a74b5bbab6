/** The type of `env` in tests: the Worker's bindings. */
import type { Env as GatewayEnv } from "../../src/platform/env.ts";

declare global {
  // biome-ignore lint/style/noNamespace: the Workers types offer no other way to say what `env` holds
  namespace Cloudflare {
    interface Env extends GatewayEnv {}
  }
}
