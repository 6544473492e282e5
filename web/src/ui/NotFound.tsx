import { Link } from 'wouter'

export function NotFound() {
  return (
    <main className="m-auto max-w-md p-8 text-center">
      <h1 className="text-xl font-semibold">Nothing is here</h1>
      <p className="mt-2 text-muted">The address leads to no view of this page.</p>
      <Link href="/" className="mt-4 inline-flex items-center text-accent underline max-md:min-h-11">
        Start a conversation
      </Link>
    </main>
  )
}
