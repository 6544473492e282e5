import { Link } from 'wouter'
import { text } from '@/text'

export function NotFound() {
  return (
    <main className="m-auto max-w-md p-8 text-center">
      <h1 className="text-xl font-semibold">{text.shell.notFound}</h1>
      <p className="mt-2 text-muted">{text.shell.notFoundAbout}</p>
      <Link href="/" className="mt-4 inline-flex items-center text-accent underline max-md:min-h-11">
        {text.shell.start}
      </Link>
    </main>
  )
}
