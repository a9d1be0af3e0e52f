"""What people read: tables and charts for the terminal (text) and one page to keep (html)."""
