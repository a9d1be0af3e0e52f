from rankdrift.cli import main

main()
