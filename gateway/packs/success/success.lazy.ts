/** The part of the pack that is loaded when it is on: two tools that read, and two topics whose handlers write. */
import { Type } from "typebox";
import type { PackContent, PackContext } from "../../src/packs/pack.ts";
import { packTool, packTopic } from "../../src/packs/schema.ts";
import { type Result, succeed } from "../../src/ports/result.ts";
import { accounts } from "./accounts.ts";
import { AGENTS } from "./gen/agents.ts";

const plain = { additionalProperties: false } as const;
const Account = Type.String({ pattern: "^[A-Za-z0-9_-]{1,64}$" });
const Of = Type.Object({ account: Account }, plain);

const read =
  (what: string) =>
  async ({ account }: { readonly account: string }, context: PackContext): Promise<Result<unknown>> =>
    accounts(context, { method: "GET", path: `/accounts/${account}/${what}` });
async function write(context: PackContext, path: string, body: object, key: string): Promise<Result<void>> {
  const done = await accounts(context, { method: "POST", path, body, key });
  return done.ok ? succeed(undefined) : done;
}

export const content: PackContent = {
  agents: AGENTS,
  tools: [
    packTool({
      name: "success_usage",
      description: "Returns how an account uses the service: seats, active users, trend.",
      policyClass: "read_private",
      input: Of,
      run: read("usage"),
    }),
    packTool({
      name: "success_tickets",
      description: "Returns the open support tickets of an account.",
      policyClass: "read_private",
      input: Of,
      run: read("tickets"),
    }),
  ],
  topics: [
    packTopic({
      name: "success_scores",
      version: 1,
      doc: "success_scores stores the health of an account: {account, score: 0 to 100, reason}.",
      needsApproval: false,
      payload: Type.Object(
        { account: Account, score: Type.Integer({ minimum: 0, maximum: 100 }), reason: Type.String({ minLength: 1, maxLength: 500 }) },
        plain,
      ),
      text: ({ account, score, reason }) => `Health of ${account}: ${score}. ${reason}`,
      handle: ({ account, score, reason }, context, { idempotency_key: key }) =>
        write(context, `/accounts/${account}/scores`, { score, reason }, key),
    }),
    packTopic({
      name: "success_tasks",
      version: 1,
      doc: "success_tasks gives a person of your human's team a task, after your human's word: {account, title, why}.",
      needsApproval: true,
      payload: Type.Object(
        { account: Account, title: Type.String({ minLength: 1, maxLength: 200 }), why: Type.String({ minLength: 1, maxLength: 500 }) },
        plain,
      ),
      text: ({ account, title, why }) => `Task for ${account}: ${title}. Why: ${why}`,
      handle: ({ account, title, why }, context, { idempotency_key: key }) =>
        write(context, `/accounts/${account}/tasks`, { title, why }, key),
    }),
  ],
};
