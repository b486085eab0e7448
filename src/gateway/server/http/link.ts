import { present } from "../../../core/present.ts";
import { checkParams } from "../../../protocol/check-params.ts";
import { invalidRequest } from "../../../protocol/errors.ts";
import type { LinkedPayload } from "../../../protocol/link.ts";
import { LinkSchema } from "../../../protocol/link.ts";
import { everyUser } from "../../auth/principal.ts";
import type { NewToken } from "../../auth/tokens.ts";
import { Refused } from "../../calls/dispatch.ts";
import { wrongCode } from "../door/refusals.ts";
import { jsonBody } from "./bodies.ts";
import type { Exchange } from "./exchange.ts";

const limits = { maxBytes: 4096, maxChunks: 64 };

/** `POST /link`: a token for the code of a link. Wrong ones are slowed as wrong tokens are. */
export async function link(exchange: Exchange): Promise<void> {
  const { ground, request } = exchange;
  const checked = checkParams(LinkSchema, await jsonBody(request, limits));
  if ("problems" in checked) throw new Refused(invalidRequest(checked.problems));
  const made = ground.parts.exchange(checked.params.code);
  if (made === null) throw new Refused(await ground.door.wrong(ground.door.addressOf(request), wrongCode));
  exchange.send({ text: JSON.stringify(linkedPayload(made)) });
}

function linkedPayload({ secret, token }: NewToken): LinkedPayload {
  const { tokenId, scopes, user, expiresAt } = token;
  const allUsers = user === everyUser;
  return {
    token: secret,
    tokenId,
    scopes: [...scopes],
    allUsers,
    ...present({ userId: allUsers ? null : user, expiresAt }),
  };
}
