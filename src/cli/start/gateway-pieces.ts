import { allHandlers } from "../../gateway/handlers/all.ts";
import type { GatewayPieces } from "./pieces.ts";

/** What the gateway of `skein start` is put together from. */
export const gatewayPieces: GatewayPieces = {
  handlers: allHandlers,
  openHub: () => inTheMaking(),
  openMcp: () => inTheMaking(),
  wanted: () => inTheMaking(),
  listen: () => inTheMaking(),
};

function inTheMaking(): never {
  throw new Error("in the making");
}
