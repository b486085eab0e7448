import type { ReactNode } from "react";
import { Suspense } from "react";
import { Route, Router, Switch, useLocation } from "wouter";
import { GatewayProvider, useAccess } from "./connect/gateway.tsx";
import { OtherUserPage, SignedOutPage } from "./connect/signed-out-page.tsx";
import { Frame } from "./frame.tsx";
import { HomePage, SessionPage } from "./session/session-page.tsx";
import { useHashLocation } from "./ui/hash-location.ts";
import { lazyPart } from "./ui/lazy-part.tsx";
import { Notice } from "./ui/notice.tsx";
import { PageBoundary } from "./ui/page-boundary.tsx";

const DeskPage = lazyPart(() => import("./desk/desk-page.tsx"));
const FamilyPage = lazyPart(() => import("./family/family-page.tsx"));
const XrayPage = lazyPart(() => import("./xray/xray-page.tsx"));
const TreePage = lazyPart(() => import("./tree/tree-page.tsx"));
const RunsPage = lazyPart(() => import("./runs/runs-page.tsx"));
const SearchPage = lazyPart(() => import("./search/search-page.tsx"));
const UsagePage = lazyPart(() => import("./usage/usage-page.tsx"));
const AccessPage = lazyPart(() => import("./access/access-page.tsx"));

/**
 * Routes are in the fragment. One build then works under any proxy path, and the gateway's access log does not reveal
 * which session a user is reading.
 */
export function App() {
  const access = useAccess();
  if (access.phase === "connecting") return <Notice text="Connecting to the gateway…" isBusy />;
  if (access.phase === "signed-out") return <SignedOutPage {...access} />;
  if (access.phase === "asking") return <OtherUserPage {...access} />;
  return (
    <GatewayProvider client={access.client} feed={access.feed}>
      <Router hook={useHashLocation}>
        <PageBoundaryOfRoute>
          <Frame>
            <PageBoundaryOfRoute>
              <Suspense fallback={<Notice text="Loading…" isBusy />}>
                <Switch>
                  <Route path="/" component={HomePage} />
                  <Route path="/sessions" component={DeskPage} />
                  <Route path="/s/:key/family" component={FamilyPage} />
                  <Route path="/s/:key/context" component={XrayPage} />
                  <Route path="/s/:key/tree" component={TreePage} />
                  <Route path="/s/:key" component={SessionPage} />
                  <Route path="/runs" component={RunsPage} />
                  <Route path="/search" component={SearchPage} />
                  <Route path="/usage" component={UsagePage} />
                  <Route path="/access" component={AccessPage} />
                  <Route>
                    <Notice text="Page not found." />
                  </Route>
                </Switch>
              </Suspense>
            </PageBoundaryOfRoute>
          </Frame>
        </PageBoundaryOfRoute>
      </Router>
    </GatewayProvider>
  );
}

function PageBoundaryOfRoute({ children }: { readonly children: ReactNode }) {
  const [path] = useLocation();
  return <PageBoundary path={path}>{children}</PageBoundary>;
}
