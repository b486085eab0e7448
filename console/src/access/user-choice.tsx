import { useSearchParams } from "wouter";
import { useCall, useGateway, useMay } from "../connect/gateway.tsx";
import { Choice } from "../ui/choice.tsx";

/** Whose sessions a page is about, for a token for all users. Kept as `user` in the address. */
export function UserChoice() {
  const { client } = useGateway();
  const isAllowed = useMay("users.list") && client.hello.allUsers;
  const { data } = useCall("users.list", { limit: 500 }, { isEnabled: isAllowed });
  const [query, setQuery] = useSearchParams();
  const named = (data?.users ?? []).flatMap(({ userId }) => (userId === undefined ? [] : [userId]));
  if (named.length === 0) return null;
  const change = (userId: string) => {
    const next = new URLSearchParams(query);
    // Keys of another user would name other sessions.
    for (const name of ["from", "to", "key"]) next.delete(name);
    if (userId === "") next.delete("user");
    else next.set("user", userId);
    setQuery(next);
  };
  return (
    <Choice
      label="User"
      value={query.get("user") ?? ""}
      options={{ "": "unnamed", ...Object.fromEntries(named.map((each) => [each, each])) }}
      onChange={change}
    />
  );
}
