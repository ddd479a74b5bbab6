/** The pack's topic: what is changed in the shop, each time after the owner's word. */
import { type Static, Type } from "typebox";
import type { PackContext, PackTopic } from "../../src/packs/pack.ts";
import { packTopic } from "../../src/packs/schema.ts";
import { failure, type Result, succeed } from "../../src/ports/result.ts";
import { REFUND, REFUNDABLE } from "./shapes.ts";
import { ask } from "./shop-client.ts";

const Action = Type.Object(
  {
    action: Type.Literal("refund"),
    order_id: Type.String({ pattern: "^gid://shopify/Order/\\d{1,20}$" }),
    order_name: Type.String({ pattern: "^#?[A-Za-z0-9-]{1,32}$" }),
    amount: Type.String({ pattern: "^(?!0+(\\.0{1,2})?$)\\d{1,9}(\\.\\d{1,2})?$" }),
    currency: Type.String({ pattern: "^[A-Z]{3}$" }),
    reason: Type.String({ minLength: 1, maxLength: 500 }),
  },
  { additionalProperties: false },
);
type Action = Static<typeof Action>;

const SHOWN_CHARS = 300;

/**
 * Marks a refund in the shop, so that an event is found again after the time in which Shopify remembers idempotency keys. It is the end of
 * the note, because the beginning is the model's reason, which could have the mark of another event.
 */
const markOf = (key: string): string => `[gsv ${key}]`;

async function refund(
  { order_id: id, order_name: name, amount, currency, reason }: Action,
  context: PackContext,
  key: string,
): Promise<Result<void>> {
  const found = await ask(context, { ...REFUNDABLE, variables: { id } });
  if (!found.ok) return found;
  const { order } = found.value;
  if (order === null) return failure("pack.rejected", `The shop has no order ${id}.`);
  if (order.name.replace("#", "") !== name.replace("#", ""))
    return failure("pack.rejected", `The order ${id} is ${order.name}, not ${name}, so nothing was refunded.`);
  if (order.refunds.some(({ note }) => note?.endsWith(markOf(key)) === true)) return succeed(undefined);
  const paid = order.transactions.find(
    ({ kind, status, amountSet: { shopMoney } }) =>
      ["SALE", "CAPTURE"].includes(kind) &&
      status === "SUCCESS" &&
      shopMoney.currencyCode === currency &&
      Number(shopMoney.amount) >= Number(amount),
  );
  if (paid === undefined)
    return failure("pack.rejected", `No payment of ${order.name} is as large as ${amount} ${currency}, so nothing was refunded.`);
  const input = {
    orderId: order.id,
    note: `${reason} ${markOf(key)}`,
    transactions: [{ orderId: order.id, gateway: paid.gateway ?? "", kind: "REFUND", amount, parentId: paid.id }],
  };
  const done = await ask(context, { ...REFUND, variables: { input, key } });
  if (!done.ok) return done;
  const { refund: made, userErrors } = done.value.refundCreate;
  if (userErrors.length > 0 || made === null)
    return failure(
      "pack.rejected",
      `Shopify did not refund: ${context.excerpt(userErrors.map(({ message }) => message).join("; "), SHOWN_CHARS)}`,
    );
  return succeed(undefined);
}

export const TOPICS: readonly PackTopic[] = [
  packTopic({
    name: "shopify_actions",
    version: 1,
    doc: 'shopify_actions changes the shop after your human\'s word: {action: "refund", order_id, order_name, amount: "49.00", currency, reason}.',
    needsApproval: true,
    payload: Action,
    text: ({ order_name: name, amount, currency, reason }) => `Refund ${amount} ${currency} of order ${name}? Why: ${reason}`,
    handle: (action, context, { idempotency_key: key }) => refund(action, context, key),
  }),
];
