import { accessPath } from "../paths.ts";
import { Choice, UserChoice } from "../ui/choice.tsx";
import { useQueryFields } from "../ui/query-fields.ts";
import { TabbedPage } from "../ui/tabbed-page.tsx";
import { MatrixTab } from "./matrix-tab.tsx";
import { TokensTab } from "./tokens-tab.tsx";

/**
 * `/access?from=&to=&action=&user=&most=` and `/access?tab=tokens`: which sessions can see each other, and which
 * programs have access.
 */
export default function AccessPage() {
  const [query] = useQueryFields();
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
  const [query, change] = useQueryFields();
  return (
    <Choice
      label="Show"
      value={query.get("most") ?? ""}
      options={{ "": "24 sessions", "64": "64 most recent" }}
      onChange={(most) => change({ most: most || null })}
    />
  );
}
