/** What `env` is in tests: the Worker's own bindings. */
import type { Env as GatewayEnv } from "../../src/env.ts";

declare global {
  namespace Cloudflare {
    interface Env extends GatewayEnv {}
  }
}
