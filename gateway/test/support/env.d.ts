/** The type of `env` in tests: the Worker's bindings. */
import type { Env as GatewayEnv } from "../../src/platform/env.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Whether tests that repeat one thing have their whole size: `GSV_LONG`, as in test/sizes.ts. */
    readonly isLong: boolean;
  }
}
declare global {
  // biome-ignore lint/style/noNamespace: the Workers types offer no other way to say what `env` holds
  namespace Cloudflare {
    interface Env extends GatewayEnv {}
  }
}
