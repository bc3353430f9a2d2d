/** Whether a URL holds a user name or a password. `fetch` refuses such a one, with an error that quotes it. */
export function hasLogin(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { username, password } = new URL(url)
  return username !== '' || password !== ''
}
