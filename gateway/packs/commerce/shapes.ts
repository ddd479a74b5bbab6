/** What the pack asks Shopify for, and the shapes of the answers. */
import { type Static, Type } from "typebox";

const Money = Type.Object({ shopMoney: Type.Object({ amount: Type.String(), currencyCode: Type.String() }) });
const Info = Type.Object({ hasNextPage: Type.Boolean(), endCursor: Type.Union([Type.String(), Type.Null()]) });
const text = Type.Union([Type.String(), Type.Null()]);

const Order = Type.Object({
  id: Type.String(),
  name: Type.String(),
  createdAt: Type.String(),
  email: text,
  displayFinancialStatus: text,
  displayFulfillmentStatus: text,
  totalPriceSet: Money,
  totalRefundedSet: Money,
  lineItems: Type.Object({ nodes: Type.Array(Type.Object({ title: Type.String(), quantity: Type.Integer() })) }),
});
export type Order = Static<typeof Order>;
const MONEY = "{ shopMoney { amount currencyCode } }";
export const ORDERS = {
  query: `query Orders($first: Int!, $after: String, $query: String!) {
  orders(first: $first, after: $after, query: $query, sortKey: CREATED_AT, reverse: true) {
    nodes {
      id name createdAt email displayFinancialStatus displayFulfillmentStatus
      totalPriceSet ${MONEY} totalRefundedSet ${MONEY}
      lineItems(first: 20) { nodes { title quantity } }
    }
    pageInfo { hasNextPage endCursor }
  }
}`,
  answer: Type.Object({ orders: Type.Object({ nodes: Type.Array(Order), pageInfo: Info }) }),
};

const Product = Type.Object({
  id: Type.String(),
  title: Type.String(),
  status: Type.String(),
  totalInventory: Type.Union([Type.Integer(), Type.Null()]),
  priceRangeV2: Type.Object({ minVariantPrice: Type.Object({ amount: Type.String(), currencyCode: Type.String() }) }),
});
export const PRODUCTS = {
  query: `query Products($first: Int!, $after: String) {
  products(first: $first, after: $after, sortKey: TITLE) {
    nodes { id title status totalInventory priceRangeV2 { minVariantPrice { amount currencyCode } } }
    pageInfo { hasNextPage endCursor }
  }
}`,
  answer: Type.Object({ products: Type.Object({ nodes: Type.Array(Product), pageInfo: Info }) }),
};
export const SHOP = {
  query: "query Shop { shop { name email currencyCode ianaTimezone plan { publicDisplayName } } }",
  answer: Type.Object({
    shop: Type.Object({
      name: Type.String(),
      email: Type.String(),
      currencyCode: Type.String(),
      ianaTimezone: Type.String(),
      plan: Type.Object({ publicDisplayName: Type.String() }),
    }),
  }),
};

/** What a refund needs to know of its order. */
export const REFUNDABLE = {
  query: `query Refundable($id: ID!) {
  order(id: $id) {
    id name
    transactions(first: 50) { id kind status gateway amountSet ${MONEY} }
    refunds(first: 100) { id note }
  }
}`,
  answer: Type.Object({
    order: Type.Union([
      Type.Object({
        id: Type.String(),
        name: Type.String(),
        transactions: Type.Array(
          Type.Object({ id: Type.String(), kind: Type.String(), status: Type.String(), gateway: text, amountSet: Money }),
        ),
        refunds: Type.Array(Type.Object({ id: Type.String(), note: text })),
      }),
      Type.Null(),
    ]),
  }),
};
export const REFUND = {
  query: `mutation Refund($input: RefundInput!, $key: String!) {
  refundCreate(input: $input) @idempotent(key: $key) {
    refund { id }
    userErrors { field message }
  }
}`,
  answer: Type.Object({
    refundCreate: Type.Object({
      refund: Type.Union([Type.Object({ id: Type.String() }), Type.Null()]),
      userErrors: Type.Array(Type.Object({ message: Type.String() })),
    }),
  }),
};
