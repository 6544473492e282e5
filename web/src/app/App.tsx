import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { Suspense } from 'react'
import { Route, Switch } from 'wouter'
import { Problem } from '@/api/client'
import { routes } from '@/app/routes'
import { Shell } from '@/app/Shell'
import { NotFound } from '@/ui/NotFound'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) => !(error instanceof Problem) && count < 3,
    },
  },
})

/** The whole page: what every view shares around the view that the address names. */
export function App() {
  return (
    <QueryClientProvider client={queries}>
      <Shell>
        <Suspense fallback={null}>
          <Switch>
            {routes.map(({ path, View }) => (
              <Route key={path} path={path} component={View} />
            ))}
            <Route component={NotFound} />
          </Switch>
        </Suspense>
      </Shell>
    </QueryClientProvider>
  )
}
