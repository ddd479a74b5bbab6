/** `audit.list`. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { succeed } from "../../kernel/outcome.ts";
import type { Handler, Handlers } from "../../app/services.ts";

const list: Handler<"audit.list"> = async (services, _caller, params) => {
  const { entries, count, intact } = await services.audit.list(params.limit ?? LIMITS.pageItems, params.beforeSeq, params.action);
  return succeed({ entries: [...entries], count, intact });
};

export const auditMethods = { "audit.list": list } as const satisfies Handlers;
