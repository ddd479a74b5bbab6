/** The pack's tools. All of them only read. */
import { DAY_MS } from "../../../protocol/runtime/day.ts";
import { Type } from "typebox";
import type { PackTool } from "../../src/packs/pack.ts";
import { packTool } from "../../src/packs/schema.ts";
import { type Result, succeed } from "../../src/ports/result.ts";
import { type Order, ORDERS, PRODUCTS, SHOP } from "./shapes.ts";
import { ask, pages } from "./shop-client.ts";
import type { PackContext } from "../../src/packs/pack.ts";

/** All attempts of all pages. */
const TIMEOUT_MS = 180_000;
const plain = { additionalProperties: false } as const;

const amountOf = ({ shopMoney: { amount, currencyCode } }: Order["totalPriceSet"]): string => `${amount} ${currencyCode}`;
const shown = ({ lineItems, totalPriceSet, totalRefundedSet, ...order }: Order, now: number): object => ({
  ...order,
  ageDays: Math.floor((now - Date.parse(order.createdAt)) / DAY_MS),
  total: amountOf(totalPriceSet),
  refunded: amountOf(totalRefundedSet),
  items: lineItems.nodes,
});
async function orders(context: PackContext, query: string, most: number): Promise<Result<unknown>> {
  const found = await pages(most, async (first, after) => {
    const answer = await ask(context, { ...ORDERS, variables: { first, after, query } });
    return answer.ok ? succeed(answer.value.orders) : answer;
  });
  if (!found.ok) return found;
  const { items, more } = found.value;
  return succeed({ orders: items.map((order) => shown(order, context.now())), ...(more ? { more } : {}) });
}

export const TOOLS: readonly PackTool[] = [
  packTool({
    name: "shopify_get_order_by_email",
    description: "Finds a customer's orders in the shop by email address, the newest first, with items, amounts and age in days.",
    policyClass: "read_private",
    timeoutMs: TIMEOUT_MS,
    input: Type.Object(
      {
        // No character that has a meaning in Shopify's search.
        email: Type.String({ maxLength: 254, pattern: '^[^\\s"\\\\:()*]+@[^\\s"\\\\:()*]+$' }),
        order_name: Type.Optional(Type.String({ pattern: "^#?[A-Za-z0-9-]{1,32}$", description: "Such as #1042." })),
      },
      plain,
    ),
    run: async ({ email, order_name: name }, context) =>
      orders(context, `email:"${email}"${name === undefined ? "" : ` AND name:"${name}"`}`, 10),
  }),
  packTool({
    name: "shopify_recent_orders",
    description: "Lists the shop's orders of the last days, the newest first.",
    policyClass: "read_private",
    timeoutMs: TIMEOUT_MS,
    input: Type.Object(
      {
        days: Type.Optional(Type.Integer({ minimum: 1, maximum: 60, description: "7 by default." })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 250, description: "100 by default." })),
      },
      plain,
    ),
    run: async ({ days = 7, limit = 100 }, context) =>
      orders(context, `created_at:>="${new Date(context.now() - days * DAY_MS).toISOString()}"`, limit),
  }),
  packTool({
    name: "shopify_products",
    description: "Lists the shop's products by title, with status, stock and lowest price.",
    policyClass: "read_private",
    timeoutMs: TIMEOUT_MS,
    input: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 250, description: "50 by default." })) }, plain),
    run: async ({ limit = 50 }, context) => {
      const found = await pages(limit, async (first, after) => {
        const answer = await ask(context, { ...PRODUCTS, variables: { first, after } });
        return answer.ok ? succeed(answer.value.products) : answer;
      });
      if (!found.ok) return found;
      const products = found.value.items.map(({ priceRangeV2: { minVariantPrice: price }, totalInventory: stock, ...product }) => ({
        ...product,
        stock,
        from: `${price.amount} ${price.currencyCode}`,
      }));
      return succeed({ products, ...(found.value.more ? { more: true } : {}) });
    },
  }),
  packTool({
    name: "shopify_shop_info",
    description: "Returns the shop's name, currency, time zone and plan.",
    policyClass: "read_private",
    timeoutMs: TIMEOUT_MS,
    input: Type.Object({}, plain),
    run: async (_args, context) => {
      const answer = await ask(context, { ...SHOP, variables: {} });
      return answer.ok ? succeed(answer.value.shop) : answer;
    },
  }),
];
