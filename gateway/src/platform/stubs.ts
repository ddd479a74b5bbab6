/** Gives Durable Objects as ports: callers do not see that a call crosses to another object. */
import type { Env } from "./env.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { SessionPort } from "../ports/session.ts";

/** There is one gateway. */
const GATEWAY_NAME = "singleton";

export const gatewayStub = (env: Env): DurableObjectStub<Env["GATEWAY"] extends DurableObjectNamespace<infer T> ? T : never> =>
  env.GATEWAY.getByName(GATEWAY_NAME);
export const gatewayPort = (env: Env): GatewayPort => gatewayStub(env);
/** `key` is canonical. */
export const sessionPort = (env: Env, key: string): SessionPort => env.SESSION.getByName(key);
