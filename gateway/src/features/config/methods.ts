/** `config.*`. A change holds from the next model call on: runs ask for their context by its version. */
import { succeed } from "../../kernel/outcome.ts";
import type { Handler, Handlers } from "../../app/services.ts";

const get: Handler<"config.get"> = (services, _caller, params) => {
  const read = services.config.read(params.path);
  if (!read.ok) return read;
  const { path, value } = read.value;
  if (path === undefined) return succeed({ config: value });
  return succeed({ path, ...(value === undefined ? {} : { value }) });
};

const set: Handler<"config.set"> = (services, _caller, params) => {
  const change = services.config.set(params.path, params.value);
  return change.ok ? succeed({ ok: true, path: change.value.path }) : change;
};

const unset: Handler<"config.unset"> = (services, _caller, params) => {
  const change = services.config.unset(params.path);
  return change.ok ? succeed({ ok: true, path: change.value.path, wasSet: change.value.wasSet }) : change;
};

export const configMethods = { "config.get": get, "config.set": set, "config.unset": unset } as const satisfies Handlers;
