import { useSearchParams } from "wouter";
import { Choice } from "../ui/choice.tsx";
import { TabbedPage } from "../ui/tabbed-page.tsx";
import { accessPath } from "./access-path.ts";
import { MatrixTab } from "./matrix-tab.tsx";
import { TokensTab } from "./tokens-tab.tsx";
import { UserChoice } from "./user-choice.tsx";

/** `/access?from=&to=&action=&user=&most=` and `/access?tab=tokens`: which sessions may see which, and which programs may see any. */
export default function AccessPage() {
  const [query] = useSearchParams();
  const isTokens = query.get("tab") === "tokens";
  return (
    <TabbedPage
      title="Access"
      tabs={[
        { name: "Sessions", href: accessPath(), isCurrent: !isTokens },
        { name: "Tokens", href: accessPath({ tab: "tokens" }), isCurrent: isTokens },
      ]}
      tools={
        isTokens ? undefined : (
          <>
            <SizeChoice />
            <UserChoice />
          </>
        )
      }
    >
      {isTokens ? (
        <TokensTab />
      ) : (
        <MatrixTab
          from={query.get("from")}
          to={query.get("to")}
          userId={query.get("user")}
          action={query.get("action")}
          isWide={query.get("most") === "64"}
        />
      )}
    </TabbedPage>
  );
}

function SizeChoice() {
  const [query, setQuery] = useSearchParams();
  const change = (most: string) => {
    const next = new URLSearchParams(query);
    if (most === "") next.delete("most");
    else next.set("most", most);
    setQuery(next);
  };
  return (
    <Choice
      label="Show"
      value={query.get("most") ?? ""}
      options={{ "": "24 sessions", "64": "64 most recent" }}
      onChange={change}
    />
  );
}
